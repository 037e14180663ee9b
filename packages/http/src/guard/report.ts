import type { ErrorCode } from '@sluice/core'

/** Where values that cannot be used are reported. `place` never varies with the value, `detail` does. */
export type Report = (code: ErrorCode, place: string, detail: string) => void
