import { parentWindow } from "./airflowLinks";

type Mode = "light" | "dark";

/** Follows Airflow's colour mode if Airflow embeds the page, else the viewer's own setting. */
export function followColourMode(): void {
  const parent = parentWindow();
  const outer = parent?.document.documentElement;
  const update = () => apply(modeOf(outer?.classList) ?? stored() ?? preferred());
  update();
  if (outer !== undefined) {
    new MutationObserver(update).observe(outer, { attributes: true, attributeFilter: ["class"] });
  }
  window.addEventListener("storage", update);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", update);
}

function apply(mode: Mode): void {
  document.documentElement.classList.toggle("dark", mode === "dark");
  document.documentElement.classList.toggle("light", mode === "light");
}

export function modeOf(classes: { contains(name: string): boolean } | undefined): Mode | null {
  if (classes?.contains("dark")) return "dark";
  return classes?.contains("light") ? "light" : null;
}

/** What Airflow's UI stored; "system" or nothing leaves it to the browser. */
function stored(): Mode | null {
  try {
    const theme = window.localStorage.getItem("theme");
    return theme === "light" || theme === "dark" ? theme : null;
  } catch {
    return null;
  }
}

function preferred(): Mode {
  return window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}
