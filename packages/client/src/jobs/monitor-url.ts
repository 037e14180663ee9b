import { type Patience, peekJson } from '../messages/peek-json.ts'

/** Headers that name a status monitor: RFC 7240's example, then those of Azure. */
const headerNames = ['Location', 'Operation-Location', 'Azure-AsyncOperation']

/** Members of a body that do so: pages see no header that the server does not expose. */
const memberNames = ['monitor', 'statusUrl', 'status_url', 'location']

/** What a member says may be a place of another kind, a city for example. */
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
