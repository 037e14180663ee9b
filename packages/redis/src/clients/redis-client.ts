/** Returns whether a client has these methods, by which clients are recognised. */
export function hasMethods<Client extends object>(
  client: object,
  ...names: readonly string[]
): client is Client {
  return names.every((name) => typeof Reflect.get(client, name) === 'function')
}

export interface RedisClient {
  /**
   * True if keys are spread over several nodes, so that all keys of a command must share a slot.
   */
  readonly isCluster: boolean
  /** True if it resends, in order, commands whose replies were lost with a connection. */
  readonly sendsAgain?: boolean
  /**
   * Sends one command and resolves to its reply; rejects for an error reply.
   * @param key one of its keys, which selects the node of a Cluster
   */
  send(name: string, args: readonly string[], key: string): Promise<unknown>
}

/** Returns whether a node refused a command because its slot has moved to another node. */
export function isMoved(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('MOVED ')
}

/**
 * Returns the node that a slot is migrating to, if a node refused a command for a key that has
 * already moved.
 */
export function askedNode(error: unknown): string | undefined {
  if (!(error instanceof Error) || !error.message.startsWith('ASK ')) return undefined
  return error.message.slice(error.message.lastIndexOf(' ') + 1)
}
