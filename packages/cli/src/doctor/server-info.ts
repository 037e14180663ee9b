import { isOptions } from '@sluice/core'
import { isRefused, type RedisLink, reasonOf } from './redis-link.ts'

export interface ServerInfo {
  /** A raw field; `undefined` if the server does not report it. */
  text(name: string): string | undefined
  number(name: string): number | undefined
}

/** Reads `INFO`; returns the reason as a string if it is forbidden. */
export async function serverInfo(link: RedisLink): Promise<ServerInfo | string> {
  try {
    const fields = fieldsOf(await link.ask('INFO'))
    const text = (name: string) => fields.get(name)
    const number = (name: string) => {
      const value = Number(text(name) || Number.NaN)
      return Number.isNaN(value) ? undefined : value
    }
    return { text, number }
  } catch (error) {
    if (!isRefused(error)) throw error
    return reasonOf(error)
  }
}

/** Reads a setting; `undefined` if `CONFIG GET` is forbidden, as on managed servers. */
export async function configured(link: RedisLink, name: string): Promise<string | undefined> {
  const answer = await link.ask('CONFIG', 'GET', name).catch(() => undefined)
  if (Array.isArray(answer) && answer.length === 2) return String(answer[1])
  return isOptions(answer) && Object.hasOwn(answer, name)
    ? String(Reflect.get(answer, name))
    : undefined
}

/** Parses the fields of a reply with lines such as `redis_version:7.0.0`. */
export function fieldsOf(answer: unknown): ReadonlyMap<string, string> {
  const lines = String(answer).matchAll(/^([^#:\r\n]+):(.*?)\r?$/gm)
  return new Map([...lines].map(([, name = '', value = '']) => [name, value]))
}
