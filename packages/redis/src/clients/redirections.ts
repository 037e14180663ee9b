/** Tells whether a node did not run a command, since another has its slot now. */
export function isMoved(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('MOVED ')
}

/**
 * The address of the node that a slot is moving to, if a node did not run a command because the key
 * has left it.
 */
export function askedNode(error: unknown): string | undefined {
  if (!(error instanceof Error) || !error.message.startsWith('ASK ')) return undefined
  return error.message.slice(error.message.lastIndexOf(' ') + 1)
}
