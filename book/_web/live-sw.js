// For hosts that cannot send headers: adds the two that Stop needs, and who may frame a page.

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

function isolated(answer) {
  if (answer.status === 0 || answer.type === "opaque") return answer;
  const headers = new Headers(answer.headers);
  headers.set("Cross-Origin-Opener-Policy", "same-origin");
  headers.set("Cross-Origin-Embedder-Policy", "require-corp");
  headers.set("Cross-Origin-Resource-Policy", "same-origin");
  if (!headers.has("Content-Security-Policy")) headers.set("Content-Security-Policy", "frame-ancestors 'self'");
  const bare = [101, 204, 205, 304].includes(answer.status);
  return new Response(bare ? null : answer.body, { status: answer.status, statusText: answer.statusText, headers });
}

self.addEventListener("fetch", (event) => {
  const { request } = event, url = new URL(request.url);
  if (request.method !== "GET" || url.origin !== self.location.origin || request.headers.has("range")) return;
  event.respondWith(fetch(request).then(isolated));
});
