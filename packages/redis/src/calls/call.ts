import type { RedisArgument } from '../clients/redis-client.ts'
import type { Plan } from '../scripts/plans.ts'
import type { Script, Scripts } from '../scripts/scripts.ts'
import type { StoreSettings } from '../scripts/usual-states.ts'
import { GeneralCall } from './general-call.ts'
import { type Row, repeatsKeys } from './row.ts'

/** What a call says of itself, beside its rows. */
export interface CallHeader {
  /** Milliseconds since the epoch; `undefined` for the server's clock. */
  readonly now: number | undefined
  /**
   * Echoed by the script, so that a reply can be told from one to another call. A request alone has
   * no echo.
   */
  readonly number: number
  /** u32 from which the incarnations of the call are counted. */
  readonly incarnation: number
}

/** A call as it travels: a script, and the command that runs it. */
export interface EncodedCall {
  readonly script: Script
  readonly command: [name: 'EVALSHA', sha1: string, ...RedisArgument[]]
  /** What the script echoes. */
  readonly text: string
}

/** How calls of one store are written. */
export class CallEncoder {
  readonly #scripts: Scripts
  readonly #settings: StoreSettings

  constructor(scripts: Scripts, settings: StoreSettings) {
    this.#scripts = scripts
    this.#settings = settings
  }

  /** @param plan of all the rows, where they have one in common: then a script for just that decides them */
  encode(rows: readonly Row[], plan: Plan | undefined, header: CallHeader): EncodedCall {
    const { ttlMargin, isServerClock } = this.#settings
    const text = `c${header.number};${ttlMargin};${header.incarnation};${isServerClock ? 1 : 0}`
    const script = plan?.script ?? this.#scripts.general
    const command: [name: 'EVALSHA', sha1: string, ...string[]] = ['EVALSHA', script.sha1, '']
    for (let i = 0; i < rows.length; i += 1) {
      const keys = rows[i]?.keys ?? []
      for (let k = 0; k < keys.length; k += 1) command.push(keys[k] ?? '')
    }
    command[2] = String(command.length - 3)
    command.push(header.now === undefined ? '' : String(header.now), text)
    if (plan) pushPlan(command, plan, rows)
    else command.push(new GeneralCall(rows, this.#settings).json)
    return { script, command, text }
  }
}

/** What `lua/usual-one.lua` and `lua/usual-list.lua` read. For one request of one policy and of cost 1 the policy is enough. */
function pushPlan(command: string[], { fields, width }: Plan, rows: readonly Row[]): void {
  const hasCosts = !rows.every(costsOne)
  if (width > 1) command.push(String(width), repeatsKeys(rows) ? '1' : '0')
  for (const field of fields) command.push(field)
  if (width === 1 && (rows.length > 1 || hasCosts)) command.push(repeatsKeys(rows) ? '1' : '0')
  if (!hasCosts) return
  for (const { checks } of rows) for (const { cost } of checks) command.push(String(cost))
}

function costsOne({ checks }: Row): boolean {
  for (let i = 0; i < checks.length; i += 1) if (checks[i]?.cost !== 1) return false
  return true
}
