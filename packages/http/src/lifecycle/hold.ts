/** What a request occupies until its response is over, such as a lease. Only the first call of the two counts. */
export interface Hold {
  /** The response was sent, with this status. */
  finish(status: number): void
  /** The connection went first. */
  abort(): void
}
