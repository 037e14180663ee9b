/** Tells whether a client has methods, by which clients are known. */
export function hasMethods(client: object, ...names: readonly string[]): boolean {
  return names.every((name) => typeof Reflect.get(client, name) === 'function')
}

/** All that the store needs of a client. */
export interface RedisClient {
  /**
   * True if keys are spread over several nodes, so that one command may name keys of one slot only.
   */
  readonly isCluster: boolean
  /**
   * Sends one command and gives its reply; an error reply rejects.
   * @param key one of its keys, by which a Cluster finds the node
   */
  send(name: string, args: readonly string[], key: string): Promise<unknown>
}
