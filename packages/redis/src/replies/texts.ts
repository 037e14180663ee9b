/** Decodes a reply that is a list; any other is an empty one. */
export function listOf(reply: unknown): readonly unknown[] {
  return Array.isArray(reply) ? reply : []
}

/** Decodes a text of a reply: clients give texts, or bytes; a number where a text is one. */
export function textOf(value: unknown): string {
  if (typeof value === 'string' || typeof value === 'number') return String(value)
  return value instanceof Uint8Array ? new TextDecoder().decode(value) : ''
}
