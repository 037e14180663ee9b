/** Timers and networks squeeze calls together; this much air keeps a steady stream within its limit. */
export const air = 1.1
