/** Clients come back, and reading an IPv6 takes microseconds. When these are known, all are forgotten. */
const mostKnown = 4_096

/** The longest text of an address: others are not worth remembering. */
const longestAddress = 64

/** Remembers what was found out about an address. */
export function remember<Value>(known: Map<string, Value>, address: string, value: Value): Value {
  if (address.length > longestAddress) return value
  if (known.size >= mostKnown) known.clear()
  // A copy: the text may be a slice of a long header, all of which would be kept with it.
  known.set(Buffer.from(address).toString(), value)
  return value
}
