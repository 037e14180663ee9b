interface Counts {
  checks: number
  failed: number
  incidents: number
}

/** Counts the failed checks and the incidents of the last one to two windows. */
export class WindowedRate {
  readonly #windowMs: number
  #startMs = Number.NEGATIVE_INFINITY
  #current: Counts = none()
  #previous: Counts = none()

  constructor(windowMs: number) {
    this.#windowMs = windowMs
  }

  succeed(nowMs: number): void {
    this.#turn(nowMs)
    this.#current.checks += 1
  }

  fail(nowMs: number, isNewIncident: boolean): void {
    this.#turn(nowMs)
    this.#current.checks += 1
    this.#current.failed += 1
    if (isNewIncident) this.#current.incidents += 1
  }

  counts(nowMs: number): Readonly<Counts> {
    this.#turn(nowMs)
    const [one, other] = [this.#current, this.#previous]
    return {
      checks: one.checks + other.checks,
      failed: one.failed + other.failed,
      incidents: one.incidents + other.incidents,
    }
  }

  clear(): void {
    this.#current = none()
    this.#previous = none()
  }

  #turn(nowMs: number): void {
    const passed = nowMs - this.#startMs
    if (passed < this.#windowMs) return
    this.#previous = passed < 2 * this.#windowMs ? this.#current : none()
    this.#current = none()
    this.#startMs = nowMs
  }
}

function none(): Counts {
  return { checks: 0, failed: 0, incidents: 0 }
}
