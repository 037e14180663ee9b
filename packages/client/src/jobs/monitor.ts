import { type Patience, peekJson } from '../calls/response.ts'

/** Headers that name a status monitor: RFC 7240's example, then those of Azure. */
const headerNames = ['Location', 'Operation-Location', 'Azure-AsyncOperation']

/** Members of a body that name a status monitor: pages see only exposed headers. */
const memberNames = ['monitor', 'statusUrl', 'status_url', 'location']

/** Members may hold other kinds of locations, such as a city, so only URLs count. */
const looksLikeUrl = /^(https?:\/\/|\.{0,2}\/)/i

/** Returns the URL of the status monitor that the headers of a 202 name. */
export function monitorInHeaders({ headers }: Response, base: string): string | undefined {
  return firstUrl(
    headerNames.map((name) => headers.get(name)),
    base,
  )
}

/** Returns the URL of the monitor that the JSON body of a 202 names. The body stays unread. */
export async function monitorInBody(
  response: Response,
  base: string,
  patience: Patience,
): Promise<string | undefined> {
  const body = await peekJson(response, patience)
  const members = memberNames.map((name) => body[name])
  return firstUrl(
    members.filter((member) => looksLikeUrl.test(String(member))),
    base,
  )
}

/** The first URL that may be polled: http or https, and only https after an https answer. */
function firstUrl(references: readonly unknown[], base: string): string | undefined {
  for (const reference of references) {
    if (typeof reference !== 'string' || !URL.canParse(reference, base || undefined)) continue
    const { protocol, href } = new URL(reference, base || undefined)
    const isInClear = protocol === 'http:' && !base.startsWith('https:')
    if (isInClear || protocol === 'https:') return href
  }
  return undefined
}

/** Time (ms) for the document of a monitor to arrive. A later one counts as a result. */
export const maxStatusMs = 1000

/**
 * Returns whether an answer of a monitor means that the job is not done. An answer to an early
 * poll, or of a busy server, means that too. An answer after a redirect is the result.
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
  // Pages see Retry-After only if the server exposes it.
  const { status: word } = status === 200 ? await peekJson(response, patience) : {}
  return word === 'pending' || word === 'running'
}

/** Returns a URL without scheme and final slash, since servers redirect for both. */
function placeOf(url: string): string {
  if (!URL.canParse(url)) return url
  const { host, pathname, search } = new URL(url)
  return `${host}${pathname.replace(/\/$/, '')}${search}`
}
