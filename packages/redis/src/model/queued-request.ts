import type {
  Cancellation,
  Check,
  ControlCall,
  GrantCheck,
  Held,
  Outcome,
  StoreOp,
} from '@sluice/core'
import type { ResetCheck } from '@sluice/core/backend'

/** A check of any operation, as passed to scripts. For `block`, `cost` is the duration in ms. */
export type QueuedCheck = Check &
  Partial<
    Pick<Held, 'receipt' | 'refunded'> & Pick<GrantCheck, 'terms'> & Pick<ResetCheck, 'closed'>
  >

/**
 * The outcome of a check of any operation. For operations that change something, `allowed` is true
 * if there was anything to change.
 */
export interface QueuedOutcome extends Outcome {
  /** For `grant`: the units granted. The receipt is for the closed grants. */
  readonly granted?: number
}

/** A request of any operation, queued for Redis: an `Ask`, or one whose caller awaits a promise. */
export interface QueuedRequest extends Cancellation {
  readonly op: StoreOp | 'grant'
  checks: readonly QueuedCheck[]
  keys: readonly string[]
  settle(outcomes: readonly QueuedOutcome[]): void
  fail(error: unknown): void
}

/** A request whose caller awaits a promise. A literal with an accessor would cost 2 µs. */
export class PromisedRequest implements QueuedRequest {
  readonly op: QueuedRequest['op']
  checks: readonly QueuedCheck[]
  keys: readonly string[]
  settle!: QueuedRequest['settle']
  fail!: QueuedRequest['fail']
  readonly outcomes: Promise<readonly QueuedOutcome[]>
  readonly #cancellation: Cancellation | undefined

  constructor(
    { op, checks, keys }: Pick<QueuedRequest, 'op' | 'checks' | 'keys'>,
    cancellation: Cancellation | undefined,
  ) {
    this.op = op
    this.checks = checks
    this.keys = keys
    this.#cancellation = cancellation
    this.outcomes = new Promise((resolve, reject) => {
      this.settle = resolve
      this.fail = reject
    })
  }

  get isUnwanted(): boolean {
    return this.#cancellation?.isUnwanted ?? false
  }

  get control(): ControlCall | undefined {
    return this.#cancellation?.control
  }
}
