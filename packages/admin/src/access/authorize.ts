/** What somebody may do: look, act on keys and jobs, change policies. */
export type Role = 'read' | 'keys' | 'policies'
