/** Several texts as one, so that no two lists give the same: each is preceded by its length. */
export function joinKey(tag: string, parts: readonly string[]): string {
  return tag + parts.map((part) => `${part.length}:${part}`).join('')
}
