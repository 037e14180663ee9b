/**
 * The weight of a finding. `error`: requests are decided wrong, or by the failure mode. `warning`:
 * they will be, once something happens. `note`: something that could not be looked at, or that is
 * good to know.
 */
export type Severity = 'error' | 'warning' | 'note' | 'ok'

/** One thing that was looked at. */
export interface Finding {
  /** The subject: `connection`, `memory`, `clock`. */
  readonly check: string
  readonly severity: Severity
  readonly seen: string
  /** The remedy. An `ok` has none. */
  readonly fix?: string
}

type Found = (check: string, seen: string, fix?: string) => Finding

/** Makes findings by their weight. */
export const found: Readonly<Record<Severity, Found>> = {
  error: (check, seen, fix) => finding('error', check, seen, fix),
  warning: (check, seen, fix) => finding('warning', check, seen, fix),
  note: (check, seen, fix) => finding('note', check, seen, fix),
  ok: (check, seen, fix) => finding('ok', check, seen, fix),
}

function finding(
  severity: Severity,
  check: string,
  seen: string,
  fix: string | undefined,
): Finding {
  return { check, severity, seen, ...(fix !== undefined && { fix }) }
}
