"""Compiles the one implementation, which is in C, into a library beside the module."""

from pathlib import Path

from setuptools import Extension, setup

HERE = Path(__file__).resolve().parent
SOURCES = sorted(f"../src/{source.name}" for source in (HERE.parent / "src").glob("*.c"))

setup(
    name="hearth-hints",
    version="0.1.0",
    description="Takes a program's threads to their data",
    license="MIT OR Apache-2.0",
    python_requires=">=3.8",
    py_modules=["hearth_hints"],
    ext_modules=[Extension("_hearth_hints", SOURCES, extra_compile_args=["-std=gnu11"])],
)
