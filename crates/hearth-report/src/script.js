"use strict";
const root = document.documentElement;
root.classList.add("js");
const keep = (key, value) => { try { localStorage.setItem(key, value); } catch { /* not from this place */ } };
const kept = (key) => { try { return localStorage.getItem(key); } catch { return null; } };
const isDark = () => root.style.colorScheme
  ? root.style.colorScheme === "dark"
  : matchMedia("(prefers-color-scheme: dark)").matches;

const theme = document.getElementById("theme");
const label = () => { theme.textContent = isDark() ? "Light" : "Dark"; };
if (kept("hearth-theme")) root.style.colorScheme = kept("hearth-theme");
theme.addEventListener("click", () => {
  root.style.colorScheme = isDark() ? "light" : "dark";
  keep("hearth-theme", root.style.colorScheme);
  label();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", label);
label();

for (const select of document.querySelectorAll("select[data-shows]")) {
  const runs = select.closest("section").querySelectorAll("[data-run]");
  const show = () => runs.forEach((run) => run.classList.toggle("shown", run.dataset.run === select.value));
  select.addEventListener("change", show);
  show();
}
