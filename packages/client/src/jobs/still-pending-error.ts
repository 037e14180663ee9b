/** A job that was not done within `maxWaitMs` of `waitFor`. It may still be running. */
export class StillPendingError extends Error {
  override readonly name = 'StillPendingError'
  /** Where to ask again; `undefined` where even that had not come. */
  readonly monitor: string | undefined
  /** The last answer. Its body is given up where a poll was waited for since. */
  readonly response: Response

  constructor(monitor: string | undefined, response: Response) {
    super(`${monitor ?? 'the job'} is still pending, as far as is known, and 'maxWaitMs' is over`)
    this.monitor = monitor
    this.response = response
  }
}
