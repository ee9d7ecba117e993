//! Hearth in real kernels. A file is a subject, and its tests share boots.

#![allow(clippy::unwrap_used, reason = "these are tests")]

mod conformance;
mod cpus;
mod cpusets;
mod crowds;
mod decisions;
mod faults;
mod fragments;
mod gangs;
mod isolation;
mod kernels;
mod observe;
mod operate;
mod pages;
mod plans;
mod policies;
mod siblings;
mod stall;
mod stress;
mod trial;
mod waits;
