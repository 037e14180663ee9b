/** An argument of a command: text, or bytes. */
export type RedisArgument = string | Buffer

/** All that the store needs of a client. */
export interface RedisClient {
  /**
   * Sends one command and gives its reply; an error reply rejects.
   * @param args the command's name and its arguments
   */
  send(args: readonly [command: string, ...rest: RedisArgument[]]): Promise<unknown>
}
