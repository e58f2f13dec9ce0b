// Light or dark: the system's choice until the button says otherwise.

import { stored } from "./elements.js";

export function startTheme(button) {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const show = () => {
    const theme = stored("theme") ?? (system.matches ? "dark" : "light");
    document.documentElement.dataset.theme = theme;
    button.title = theme === "dark" ? "Light colours" : "Dark colours";
    button.setAttribute("aria-label", button.title);
  };
  button.addEventListener("click", () => {
    stored("theme", document.documentElement.dataset.theme === "dark" ? "light" : "dark");
    show();
  });
  system.addEventListener("change", show);
  show();
}
