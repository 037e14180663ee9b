/** Whether this is `npm run test:proofs`, which runs the files `*.scaled.test.ts` at full size. */
export const isProof: boolean = process.env.TEST_SCALE === 'proof'

/** The size of a test in `npm test`, and in `npm run test:proofs`. */
export function scaled<T>(short: T, full: T): T {
  return isProof ? full : short
}
