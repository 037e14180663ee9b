import { parseRateLimit, parseRateLimitPolicy } from '@sluice/headers'

const member = /(?:"(?:\\.|[^"\\])*"|[^",])+/g

/**
 * Joins a list of ours with one that another limiter, or a proxy, has put on the response: theirs comes first. What is
 * not of the type that drafts have had since -08, or has a name that is in our list, is dropped: a client could read
 * neither.
 */
export function joinLists(
  name: 'RateLimit' | 'RateLimit-Policy',
  theirs: readonly string[],
  ours: string | undefined,
): string | undefined {
  if (theirs.length === 0) return ours
  const parse = name === 'RateLimit' ? parseRateLimit : parseRateLimitPolicy
  const taken = new Set(ours === undefined ? [] : parse(ours).map((item) => item.name))
  const members = (theirs.join(',').match(member) ?? []).flatMap((text) => {
    const [item] = parse(text)
    if (item?.name === undefined || taken.has(item.name)) return []
    taken.add(item.name)
    return [text.trim()]
  })
  if (ours !== undefined) members.push(ours)
  return members.length === 0 ? undefined : members.join(', ')
}
