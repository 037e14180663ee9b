import {
  andThen,
  type Decision,
  type Duration,
  durationMs,
  durationOption,
  invalid,
  type MaybePromise,
  type Option,
  type OptionsOf,
  objectOption,
  quote,
  type RequiredOption,
  type SettingsOf,
} from '@sluice/core'
import { refuseUnasked } from '../request/passage.ts'
import type { Report } from '../request/user-functions.ts'
import { type Reading, SignalTable, smoothed } from './signal.ts'

class ShedTable<Native> extends SignalTable {
  /** Classes, least important first: `['batch', 'critical']`. The last class is never refused. */
  classes: RequiredOption<readonly string[]> = (classes, option) => {
    const isList =
      Array.isArray(classes) &&
      classes.length >= 2 &&
      classes.every((name) => typeof name === 'string' && name !== '') &&
      new Set(classes).size === classes.length
    if (isList) return [...classes]
    const legal = `two or more different names, the least important first, as in ['batch', 'normal', 'critical']`
    throw invalid({ option }, classes, legal)
  }
  /**
   * Returns the class of a request. A request with no class or an unknown class is in the least
   * important one. Called only under load.
   */
  priority: RequiredOption<(native: Native) => MaybePromise<string | null | undefined>> = (
    priority,
    option,
  ) => {
    if (typeof priority === 'function') return priority
    throw invalid({ option }, priority, 'a function that returns the class of a request')
  }
  /** Wait sent to refused clients, and minimum time for which a class is refused. @default '5s' */
  retryAfter?: Option<Duration, number> = durationOption('5s', durationMs)
}

/** Options for refusing less important requests under load. */
export interface ShedOptions<Native> extends OptionsOf<ShedTable<Native>> {}

export type ShedSettings<Native> = SettingsOf<ShedTable<Native>>

export function shedSettings<Native>(
  options: ShedOptions<Native> | undefined,
  option: string,
): ShedSettings<Native> | undefined {
  return options === undefined ? undefined : objectOption(new ShedTable<Native>())(options, option)
}

export interface LoadShedder<Native> {
  readonly refusal: Decision
  /** Returns whether a request belongs to a class that is being refused. */
  refuses(native: Native, report: Report): MaybePromise<boolean>
}

/**
 * Refuses classes of requests while a signal shows too much load. The range from `low` to `high` is
 * divided into even steps. At each step that the average reaches, one more class is refused. When
 * the average falls below the previous step, one class fewer is refused.
 * @throws SluiceError if the signal's thresholds are wrong
 */
export function loadShedder<Native>(settings: ShedSettings<Native>): LoadShedder<Native> {
  const { classes, priority, retryAfter: retryAfterMs } = settings
  /** Number of classes that are being refused. */
  let refused = 0
  let changedMs = 0
  const signal = smoothed(settings, { where: 'shed' }, follow)

  function follow({ value, nowMs, idleMs }: Reading): boolean {
    const { low, high, smoothingMs } = signal
    const steps = classes.length - 1
    const pressure = ((value - low) / (high - low)) * steps
    const before = refused
    if (refused < steps && pressure >= refused + 1) refused += 1
    else if (nowMs < changedMs || nowMs >= changedMs + retryAfterMs) {
      // After a pause there are no clients that would return all at once.
      const isIdle = idleMs >= Math.max(smoothingMs, retryAfterMs)
      const fewest = isIdle ? 0 : Math.max(0, before - 1)
      while (refused > fewest && pressure < refused - 1) refused -= 1
    }
    if (refused === before) return false
    changedMs = nowMs
    return true
  }

  function rank(found: unknown, report: Report): number {
    const known = typeof found === 'string' ? classes.indexOf(found) : -1
    if (known >= 0) return known
    if (found === undefined || found === null || found === '') return 0
    report(
      'SLUICE_PRIORITY_UNKNOWN',
      'shed.priority',
      `there is no class ${quote(found)}; '${classes[0]}' was used. Return one of shed.classes`,
    )
    return 0
  }

  return {
    refusal: refuseUnasked('shed', retryAfterMs),
    refuses(native, report) {
      signal.refresh(report)
      if (refused === 0) return false
      return andThen(priority(native), (found) => rank(found, report) < refused)
    },
  }
}
