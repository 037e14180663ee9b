/** The answer to a call that was not sent: the server has said to stay away for longer than the caller would wait. */
export function heldBack(waitMs: number): Response {
  const seconds = Math.max(1, Math.ceil(waitMs / 1000))
  const problem = {
    type: 'about:blank',
    title: 'Too Many Requests',
    status: 429,
    detail: `Not sent: earlier answers say to wait ${seconds} s, which is longer than this client waits.`,
  }
  return new Response(JSON.stringify(problem), {
    status: 429,
    statusText: 'Too Many Requests',
    headers: { 'Content-Type': 'application/problem+json', 'Retry-After': `${seconds}` },
  })
}
