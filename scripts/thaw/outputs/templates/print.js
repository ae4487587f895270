// On paper nothing can be unfolded: everything is open while the page is printed, and as it was again afterwards. A link
// to something that is folded away opens it.
const folded = () => document.querySelectorAll("details:not([open])");
window.addEventListener("beforeprint", () => folded().forEach((part) => part.setAttribute("open", "print")));
window.addEventListener("afterprint", () =>
  document.querySelectorAll('details[open="print"]').forEach((part) => part.removeAttribute("open")));
const unfold = () => {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const part = target?.closest("details:not([open])");
  if (!part) return;
  part.open = true;
  target.scrollIntoView();
};
window.addEventListener("hashchange", unfold);
unfold();
