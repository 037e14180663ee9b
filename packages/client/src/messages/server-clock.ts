/**
 * The server's clock, so that it does not matter how the client's is set. `Date` is floored to the second, which makes
 * waits longer, never shorter. Pages see it only where the server exposes it.
 */
export function serverNowMs(headers: Headers): number {
  const dateMs = Date.parse(headers.get('Date') ?? '')
  return Number.isNaN(dateMs) ? Date.now() : dateMs
}
