/**
 * Reads `user ada` and `tenant acme, ip 203.0.113.9`. A value with a comma and a name in it stands
 * in double quotes, as in JSON.
 * @param names the names of keys
 * @returns values by names; `undefined` for another form
 */
export function readNames(
  typed: string,
  names: readonly string[],
): Readonly<Record<string, string>> | undefined {
  const text = typed.trim()
  // A comma parts two keys only where the name of one follows, and never within quotes.
  const end = `(?:,(?=\\s*(?:${names.map(escaped).join('|')})\\s)|$)`
  const part = new RegExp(`\\s*(\\S+)\\s+("(?:[^"\\\\]|\\\\.)*"\\s*|.+?)${end}`, 'sy')
  const key: Record<string, string> = Object.create(null)
  do {
    const [, name = '', typedValue = ''] = part.exec(text) ?? []
    const value = unquoted(typedValue.trim())
    if (!names.includes(name) || name in key || value === '') return undefined
    key[name] = value
  } while (part.lastIndex < text.length)
  return { ...key }
}

/** Returns an empty text for quotes that are not as in JSON. */
function unquoted(value: string): string {
  if (!value.startsWith('"')) return value
  try {
    const text: unknown = JSON.parse(value)
    return typeof text === 'string' ? text : ''
  } catch {
    return ''
  }
}

function escaped(name: string): string {
  return name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
}
