import { expect } from 'vitest'

/** An option that is refused, with this message and this code. @default SLUICE_OPTION_INVALID */
export type Wrong = [wrong: object, message: RegExp, code?: string]

/** The error of an option that is refused, for `toThrow`. */
export const errorOf = (message: RegExp, code = 'SLUICE_OPTION_INVALID') =>
  expect.objectContaining({ name: 'SluiceError', code, message: expect.stringMatching(message) })
