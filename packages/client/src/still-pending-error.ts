/** A job that was not done within `maxWaitMs` of `waitFor`. It may still be running. */
export class StillPendingError extends Error {
  override readonly name = 'StillPendingError'
  /** Where to ask again. */
  readonly monitor: string
  /** The last answer. */
  readonly response: Response

  constructor(monitor: string, response: Response) {
    super(`${monitor} says that it is still pending, and 'maxWaitMs' is over`)
    this.monitor = monitor
    this.response = response
  }
}
