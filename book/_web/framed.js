// Another site must not show this page inside its own, where clicks could be led astray. Hosts that
// send headers refuse it before this script is asked (_headers).
if (self !== top) {
  let own = false;
  try { own = top.location.origin === location.origin; } catch { /* another site */ }
  if (!own) {
    window.stop();
    const link = document.createElement("a");
    Object.assign(link, { href: location.href, target: "_blank", rel: "noopener", textContent: "This page is not shown inside other sites: open it by itself." });
    document.documentElement.replaceChildren(link);
  }
}
