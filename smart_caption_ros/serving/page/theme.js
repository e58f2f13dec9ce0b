// Light or dark: the system's choice until the button says otherwise.

import { setText, stored } from "./elements.js";

export function startTheme(button) {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const show = () => {
    const theme = stored("theme") ?? (system.matches ? "dark" : "light");
    document.documentElement.dataset.theme = theme;
    setText(button, theme === "dark" ? "Light" : "Dark");
    button.title = theme === "dark" ? "Show the page in light colours" : "Show the page in dark colours";
  };
  button.addEventListener("click", () => {
    stored("theme", document.documentElement.dataset.theme === "dark" ? "light" : "dark");
    show();
  });
  system.addEventListener("change", show);
  show();
}
