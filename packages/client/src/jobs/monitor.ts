import { type Patience, peekJson } from '../response.ts'

/** Headers that name a status monitor: RFC 7240's example, then those of Azure. */
const headerNames = ['Location', 'Operation-Location', 'Azure-AsyncOperation']

/** Members of a body that do so: pages see no header that the server does not expose. */
const memberNames = ['monitor', 'statusUrl', 'status_url', 'location']

/** Members may hold other kinds of locations, such as a city, so only URLs count. */
const looksLikeUrl = /^(https?:\/\/|\.{0,2}\/)/i

/** The URL of the status monitor that the headers of a 202 name; `undefined` when they name none. */
export function monitorInHeaders({ headers }: Response, base: string): string | undefined {
  return firstUrl(
    headerNames.map((name) => headers.get(name)),
    base,
  )
}

/** The one that its JSON body names. The body stays unread. */
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

/** The first that may be polled: of the web, and not in the clear where the answer was not. */
function firstUrl(references: readonly unknown[], base: string): string | undefined {
  for (const reference of references) {
    if (typeof reference !== 'string' || !URL.canParse(reference, base || undefined)) continue
    const { protocol, href } = new URL(reference, base || undefined)
    const isInClear = protocol === 'http:' && !base.startsWith('https:')
    if (isInClear || protocol === 'https:') return href
  }
  return undefined
}

/** Time (ms) for the document of a monitor to arrive. A document that takes longer is a result, or names no other monitor. */
export const maxStatusMs = 1000

/**
 * Decides if an answer of a monitor says that the job is not done. A poll that came too early, or to a server that is busy,
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
