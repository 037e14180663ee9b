/** Tells whether a client has methods, by which clients are known. */
export function hasMethods(client: object, ...names: readonly string[]): boolean {
  return names.every((name) => typeof Reflect.get(client, name) === 'function')
}

export interface RedisClient {
  /**
   * True if keys are spread over several nodes, so that one command may name keys of one slot only.
   */
  readonly isCluster: boolean
  /** True if it sends commands again, in their order, whose replies were lost with a connection. */
  readonly sendsAgain?: boolean
  /**
   * Sends one command and gives its reply; an error reply rejects.
   * @param key one of its keys, by which a Cluster finds the node
   */
  send(name: string, args: readonly string[], key: string): Promise<unknown>
}

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
