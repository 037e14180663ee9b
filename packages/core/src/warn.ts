declare const console: { warn(message: string): void }

const warned = new Set<string>()

/** Writes a warning that the user should see once; every runtime has `console.warn`. */
export function warnOnce(message: string): void {
  if (warned.has(message)) return
  warned.add(message)
  console.warn(`sluice: ${message}`)
}
