/** Statuses that may be different next time only where the answer says when. */
const retriedWhenTold: ReadonlySet<number> = new Set([403, 409, 413])

/** Whether an answer suggests to send the request again. */
export function isRetried(
  status: number,
  toldMs: number | undefined,
  statuses: ReadonlySet<number>,
): boolean {
  return statuses.has(status) || (toldMs !== undefined && retriedWhenTold.has(status))
}

/** Whether a refusal is about who asks or what is asked, not about one request, so that other calls wait as well. */
export function isShared(status: number): boolean {
  return status === 403 || status === 429 || status === 503
}
