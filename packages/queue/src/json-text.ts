/**
 * Serialises a value as JSON. Rejects values that JSON would silently drop or empty. `undefined`
 * becomes null at the top level, and is omitted from objects.
 * @throws TypeError that names the place of a value that does not fit into JSON
 */
export function jsonText(value: unknown): string {
  const places = new Map<unknown, string>()
  const text = JSON.stringify(value, function (this: unknown, key: string, inner: unknown) {
    const place = placeIn(this, key, places.get(this))
    const what = unwritable(inner)
    if (what) throw new TypeError(`${place || 'it'} is ${what}`)
    if (typeof inner === 'object' && inner !== null) places.set(inner, place)
    return inner
  })
  return text ?? 'null'
}

function placeIn(holder: unknown, key: string, around: string | undefined): string {
  if (around === undefined) return ''
  if (Array.isArray(holder)) return `${around}[${key}]`
  return around ? `${around}.${key}` : key
}

function unwritable(value: unknown): string | undefined {
  if (typeof value === 'function' || typeof value === 'symbol') {
    return `a ${typeof value}, which JSON drops`
  }
  if (typeof value === 'bigint') return 'a BigInt, which JSON does not support; write String(…)'
  if (value instanceof Map) return 'a Map, which becomes {} in JSON; write Object.fromEntries(…)'
  return value instanceof Set ? 'a Set, which becomes {} in JSON; write Array.from(…)' : undefined
}
