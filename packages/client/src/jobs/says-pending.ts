import { type Patience, peekJson } from '../messages/peek-json.ts'

/** How long it may take until the document of a monitor has come. What takes longer is a result, or names no other monitor. */
export const maxStatusMs = 1000

/**
 * Whether an answer of a monitor says that the job is not done. A poll that came too early, or to a server that is busy,
 * says nothing of the job. Who was led elsewhere is at the result.
 */
export async function saysPending(
  response: Response,
  { monitor, ...patience }: Patience & { readonly monitor: string },
): Promise<boolean> {
  const { status, headers, redirected, url } = response
  if (status === 202) return true
  if (redirected && placeOf(url) !== placeOf(monitor)) return false
  if (status === 429) return true
  if (status !== 200 && status !== 503) return false
  if (headers.has('Retry-After')) return true
  // Pages see no Retry-After that the server does not expose.
  const { status: word } = status === 200 ? await peekJson(response, patience) : {}
  return word === 'pending' || word === 'running'
}

/** A URL without what servers redirect for by themselves: the scheme, and a slash at the end of the path. */
function placeOf(url: string): string {
  if (!URL.canParse(url)) return url
  const { host, pathname, search } = new URL(url)
  return `${host}${pathname.replace(/\/$/, '')}${search}`
}
