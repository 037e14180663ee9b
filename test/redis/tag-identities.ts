import { hash } from 'node:crypto'

const tagCount = 64

/** The number of the hash tag that an identity gets, by the rule of the key encoder. */
function tagNumberOf(identity: string): number {
  const bytes = hash('sha256', Buffer.from(identity, 'utf16le'), 'buffer')
  return (bytes[0] ?? 0) % tagCount
}

export function slotOfTag(tagNumber: number): number {
  return 256 * tagNumber + 128
}

/** So many identities that all get one tag. */
export function identitiesOf(tagNumber: number, count: number): readonly string[] {
  const found: string[] = []
  for (let i = 0; found.length < count; i += 1) {
    const identity = `id${i}`
    if (tagNumberOf(identity) === tagNumber) found.push(identity)
  }
  return found
}
