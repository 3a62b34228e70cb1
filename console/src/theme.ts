/** Sets the selected theme before the page is drawn. A script of its own, because the page has no inline script. */
const theme = localStorage.getItem("brume-theme");
if (theme === "light" || theme === "dark") document.documentElement.dataset["theme"] = theme;
