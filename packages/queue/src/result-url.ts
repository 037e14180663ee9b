import { type MaybePromise, warnOnce } from '@sluice/core'
import type { JobStatus } from './job.ts'

export type FindResultUrl = (job: JobStatus) => MaybePromise<string | undefined>

/** What RFC 3986 lets stand in a reference: no control character, and no other that ends a header or a link. */
const referenceCharacters = /^[\w.~:/?#[\]@!$&'()*+,;=%-]+$/

/** Where the result of a job is, as a function of the user's says; what is no URL is not passed on to clients. */
export async function resultUrlOf(
  find: FindResultUrl | undefined,
  job: JobStatus,
): Promise<string | undefined> {
  const url: unknown = await find?.(job)
  if (url === undefined || isReference(url)) return url
  warnOnce('resultUrl must yield a URL, absolute or not, or undefined; the result itself stood in')
  return undefined
}

function isReference(url: unknown): url is string {
  return (
    typeof url === 'string' &&
    referenceCharacters.test(url) &&
    URL.canParse(url, 'http://localhost')
  )
}
