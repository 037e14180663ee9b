import {
  type Check,
  divideChecks,
  isPromise,
  isSluiceError,
  memoryStore,
  type Outcome,
  type Policy,
} from '@sluice/core'
import {
  type Guard,
  type KeyResolver,
  type Passage,
  type RequestDecision,
  type RouteTable,
  resolveKey,
} from '@sluice/http'
import { checksOf, createGuard, laxRouting, nodeRouter } from '@sluice/http/adapter'
import { openPolicies, type Policies, placedPolicies, readPolicyFile } from '@sluice/policies'
import type { LogRequest } from '../formats/log-request.ts'
import { CliError } from '../terminal/exit-codes.ts'
import { textOf as textOfFile } from '../terminal/files.ts'
import { LogClock } from './log-clock.ts'
import { codeOfLog, keyOf } from './named-code.ts'
import { ReplayContext } from './replay-context.ts'
import type { ReplayOptions } from './replay-options.ts'

export interface Replayed {
  readonly request: LogRequest
  /** The identity by the policy file's `key`. */
  readonly client: string
  /** `heldBack`: an obedient client did not send it, since it was waiting. */
  readonly result: 'allowed' | 'denied' | 'skipped' | 'heldBack'
  /** The option that denied, if no policy did. */
  readonly refusedBy?: 'block' | 'onMissingKey' | 'maxWaiting' | undefined
  /** `undefined` if no policy was checked. */
  readonly decision: RequestDecision | undefined
  /** The checks of enforced policies, in the order of the decision's outcomes. */
  readonly checks: readonly Check[]
  /** For an allowed request: the shadow policies' checks and outcomes. */
  readonly shadow:
    | { readonly checks: readonly Check[]; readonly outcomes: readonly Outcome[] }
    | undefined
}

/** Number of identities held per policy before any is dropped. */
const maxIdentities = 1_000_000

interface Parts {
  readonly policies: Policies
  readonly guard: Guard<LogRequest>
  readonly clientKey: KeyResolver<LogRequest>
  readonly routes: RouteTable<string> | undefined
  readonly isObedient: boolean
  /** Assumptions about values missing from the log; complete after the last request. */
  notes(): readonly string[]
}

/**
 * Creates a replay of a policy file.
 * @throws SluiceError that lists the file's mistakes
 * @throws CliError if the log cannot provide a key that the file names
 */
export async function openReplay(file: string, options: ReplayOptions): Promise<Replay> {
  const policies = await openPolicies({ file })
  try {
    return replayOf(policies, options, notesOnEnds(await textOfFile(file), file))
  } catch (error) {
    throw isSluiceError(error, 'SLUICE_POLICY_UNKNOWN') ? withOption(error) : error
  } finally {
    // The guard exists: changing the file while the log is read must not affect it.
    await policies.close()
  }
}

/** Names the command-line option instead of the code. */
function withOption({ message }: Error): Error {
  const name = /name a key '([^']+)'/.exec(message)?.[1]
  const [problem] = message.split('; add it')
  if (name === undefined) return new CliError(message)
  return new CliError(
    `${problem}; add it, as in --key ${name}=header:x-${name} or ${name}=field:${name}, or --key ${name}=ip if the log has neither`,
  )
}

function notesOnEnds(text: string, name: string): readonly string[] {
  const { overrides = [] } = readPolicyFile(text, name)
  const ending = overrides.filter(({ until }) => until !== undefined).length
  if (ending === 0) return []
  return [
    `overrides with an end (until), of which the file has ${ending}, apply as of now, not as of the log's times`,
  ]
}

function replayOf(policies: Policies, options: ReplayOptions, ends: readonly string[]): Replay {
  const { file } = policies
  if (policies.state.kill !== 'none') {
    throw new CliError('SLUICE_KILL_SWITCH is set, so no limit is enforced; unset it to replay')
  }
  const { code, notes, unmatched } = codeOfLog(file, options)
  const clientKey = keyOf(file.key ?? 'ip', code.keys ?? {})
  const maxKeys = maxIdentities * (placedPolicies(file).length + (file.penalty ? 1 : 0))
  const guard = createGuard<LogRequest>(
    {
      ...code,
      policies,
      store: memoryStore({ maxKeys }),
      // Nobody reads the responses. An option must not be both in the file and in code.
      ...(file.headers === undefined && { headers: [] }),
      ...(file.key === undefined && { key: clientKey }),
      // The notes list functions that a log cannot call.
      observers: { onInvalid: () => undefined },
    },
    { where: 'the policy file', routing: laxRouting },
  )
  const patterns = new Map(options.route.map((pattern) => [pattern, pattern]))
  return new Replay({
    ...{ policies, guard, clientKey },
    routes: patterns.size > 0 ? nodeRouter.createTable(patterns, laxRouting) : undefined,
    isObedient: options.clients === 'obedient',
    notes: () => [...notes, ...ends, ...unmatched()],
  })
}

/** Replays a log against one policy file, with the production guard and memory store. */
export class Replay {
  readonly #parts: Parts
  /** Times until which obedient clients wait. */
  readonly #waiting = new Map<string, number>()

  constructor(parts: Parts) {
    this.#parts = parts
  }

  get policies(): readonly Policy[] {
    return this.#parts.policies.policies
  }

  get notes(): readonly string[] {
    return this.#parts.notes()
  }

  /**
   * Decides requests at their own times, and calls back with each result.
   * @param pieces requests sorted by time
   */
  async run(
    pieces: AsyncIterable<readonly LogRequest[]>,
    onReplayed: (replayed: Replayed) => void,
  ): Promise<void> {
    let clock: LogClock | undefined
    for await (const piece of pieces) {
      const [first] = piece
      if (!first) continue
      clock ??= new LogClock(first.startMs)
      // Other timers use the real time while waiting for a piece.
      const uninstall = clock.install()
      const { warn } = console
      console.warn = withoutAdvice(warn)
      try {
        for (const request of piece) {
          if (clock.isDueUntil(request.startMs)) await clock.advance(request.startMs)
          else clock.set(request.startMs)
          const replayed = this.#replay(request, clock)
          onReplayed(isPromise(replayed) ? await replayed : replayed)
        }
      } finally {
        uninstall()
        console.warn = warn
      }
    }
  }

  #replay(request: LogRequest, clock: LogClock): Replayed | Promise<Replayed> {
    const { routes, clientKey, guard, isObedient } = this.#parts
    request.route = routes?.find(request.method, request.path)
    const client = textOf(resolveKey(clientKey, request, request))
    if (isObedient && this.#isWaiting(client, clock.nowMs)) {
      const result = 'heldBack'
      return { request, client, result, decision: undefined, checks: [], shadow: undefined }
    }
    const context = new ReplayContext(request, client)
    const passage = guard.check(context)
    return isPromise(passage)
      ? passage.then((later) => this.#settle(later, context, clock))
      : this.#settle(passage, context, clock)
  }

  #settle(passage: Passage, context: ReplayContext, clock: LogClock): Replayed {
    const { request, client } = context
    const { decision } = passage
    const asked = decision ? checksOf(decision) : []
    const { enforced: checks, shadows } = divideChecks(asked)
    const run = decision?.shadow
    const isDenied = passage.verdict.action === 'reject'
    if (isDenied && this.#parts.isObedient) this.#wait(client, passage, clock.nowMs)
    else if (!isDenied) context.endLater(passage, clock)
    const result = isDenied ? 'denied' : decision ? 'allowed' : 'skipped'
    // One string for the store and for counting clients: there may be a million of them.
    const same = checks.find(({ key }) => key === client)?.key ?? client
    const refusedBy = isDenied ? this.#refusedBy(decision, client) : undefined
    const shadow = run && { checks: shadows, outcomes: run.outcomes }
    return { request, client: same, result, refusedBy, decision, checks, shadow }
  }

  #refusedBy(decision: RequestDecision | undefined, client: string): Replayed['refusedBy'] {
    if (!decision || decision.outcomes.length > 0) return undefined
    // The memory store never fails, so the reason is a lack of room.
    if (decision.source !== 'store') return 'maxWaiting'
    const { onMissingKey } = this.#parts.policies.file
    return client === withoutKey && onMissingKey === 'deny' ? 'onMissingKey' : 'block'
  }

  #isWaiting(client: string, nowMs: number): boolean {
    const untilMs = this.#waiting.get(client)
    if (untilMs === undefined) return false
    if (nowMs < untilMs) return true
    this.#waiting.delete(client)
    return false
  }

  /** A client gets whole seconds; none if waiting cannot help. */
  #wait(client: string, { decision }: Passage, nowMs: number): void {
    const waitMs = Math.ceil((decision?.retryAfterMs ?? 0) / 1_000) * 1_000
    if (waitMs > 0 && Number.isFinite(waitMs)) this.#waiting.set(client, nowMs + waitMs)
  }
}

/** The notes name a key that no request has. The guard's warning is for applications. */
function withoutAdvice(warn: (...data: unknown[]) => void): (...data: unknown[]) => void {
  return (...data) => {
    if (!String(data[0]).startsWith('sluice: a key function returned no key')) warn(...data)
  }
}

/** Represents all clients without the key. */
const withoutKey = '(no key)'

/** Keys of a log are found synchronously. */
function textOf(key: unknown): string {
  return typeof key === 'string' ? key : withoutKey
}
