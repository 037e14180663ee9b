import { hasMethods, type RedisClient } from './redis-client.ts'

/** The part of a Valkey GLIDE 2 client that Sluice uses, for a single node or a Cluster. */
export interface GlideLike {
  customCommand(args: string[], options?: object): Promise<unknown>
}

/** GLIDE routes Cluster commands by their keys; some commands have none. */
export function glideClient(client: object): RedisClient | undefined {
  if (!hasMethods<GlideLike>(client, 'customCommand', 'invokeScript')) return undefined
  const isCluster = hasMethods(client, 'invokeScriptWithRoute')
  return {
    isCluster,
    async send(name, args, key) {
      const isKeyless = isCluster && /^(scan|cluster|TIME)$/.test(name)
      const options = isKeyless ? { route: { type: 'primarySlotKey', key } } : undefined
      try {
        return await client.customCommand([name, ...args], options)
      } catch (error) {
        throw error instanceof Error ? new Error(replyOf(error.message), { cause: error }) : error
      }
    },
  }
}

/** The error codes that GLIDE renames. It keeps all others, followed by a colon. */
const codes: Readonly<Record<string, string>> = {
  NoScriptError: 'NOSCRIPT',
  ReadOnly: 'READONLY',
  BusyLoadingError: 'LOADING',
  TryAgain: 'TRYAGAIN',
  ClusterDown: 'CLUSTERDOWN',
  MasterDown: 'MASTERDOWN',
  PermissionDenied: 'NOPERM',
  ResponseError: 'ERR',
}

/** Turns GLIDE's error text back into the server's reply. */
function replyOf(message: string): string {
  return message
    .replace(/^An error was signalled by the server: - /, '')
    .replace(/^(\w+): /, (_, code: string) => `${codes[code] ?? code} `)
}
