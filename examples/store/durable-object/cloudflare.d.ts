/** The part of `@cloudflare/workers-types` that the example uses. */
declare module 'cloudflare:workers' {
  type Row = Readonly<Record<string, string | number>>

  interface Storage {
    readonly sql: { exec(sql: string, ...values: (string | number)[]): { toArray(): Row[] } }
    transactionSync<T>(work: () => T): T
    setAlarm(atMs: number): Promise<void>
  }

  export class DurableObject {
    readonly ctx: { readonly storage: Storage }
    constructor(ctx: DurableObject['ctx'], env: object)
  }

  /** The public methods of an object, called from elsewhere. */
  type Remote<T> = {
    [name in keyof T]: T[name] extends (...args: infer Args) => infer Answer
      ? (...args: Args) => Promise<Awaited<Answer>>
      : never
  }

  export interface DurableObjectNamespace<T> {
    getByName(name: string): Remote<T>
  }

  export interface Env {
    readonly COUNTS: DurableObjectNamespace<import('./counts.ts').Counts>
  }
  export const env: Env
}
