/** Throws, where an expression is asked for. */
export function raise(message: string): never {
  throw new Error(message)
}
