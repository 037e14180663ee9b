/** Headers that name a status monitor: RFC 7240's example, then those of Azure. */
const headerNames = ['Location', 'Operation-Location', 'Azure-AsyncOperation']

/** Members of a body that do so: pages see no header that the server does not expose. */
const memberNames = ['monitor', 'statusUrl', 'status_url', 'location']

/** The URL of the status monitor that a 202 names; `undefined` when it names none. The response's body stays unread. */
export async function monitorUrl(response: Response): Promise<string | undefined> {
  for (const name of headerNames) {
    const value = response.headers.get(name)
    if (value !== null) return absolute(value, response)
  }
  const body = await jsonOf(response)
  for (const name of memberNames) {
    const value: unknown = typeof body === 'object' && body !== null && Reflect.get(body, name)
    if (typeof value === 'string') return absolute(value, response)
  }
  return undefined
}

function absolute(reference: string, { url }: Response): string | undefined {
  const base = url || undefined
  return URL.canParse(reference, base) ? new URL(reference, base).href : undefined
}

async function jsonOf(response: Response): Promise<unknown> {
  if (!/\bjson\b/i.test(response.headers.get('Content-Type') ?? '') || response.bodyUsed)
    return undefined
  try {
    return await response.clone().json()
  } catch {
    // A body that is no JSON names no monitor.
    return undefined
  }
}
