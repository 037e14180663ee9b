import { isOptions } from '@sluice/core'
import { isRefused, type RedisLink, reasonOf } from './redis-link.ts'

/** The answer of `INFO`. */
export interface ServerInfo {
  /** A field as it is written; `undefined` where the server does not tell. */
  text(name: string): string | undefined
  /** A field as a number. */
  number(name: string): number | undefined
}

/** Reads `INFO`; a text that says why, where it may not be asked. */
export async function serverInfo(link: RedisLink): Promise<ServerInfo | string> {
  let fields: ReadonlyMap<string, string>
  try {
    fields = fieldsOf(String(await link.ask('INFO')))
  } catch (error) {
    if (!isRefused(error)) throw error
    return reasonOf(error)
  }
  const text = (name: string) => fields.get(name)
  return {
    text,
    number(name) {
      const value = text(name)
      return value === undefined || value === '' || Number.isNaN(Number(value))
        ? undefined
        : Number(value)
    },
  }
}

/** Reads a setting; `undefined` where `CONFIG GET` is forbidden, as managed servers do. */
export async function configured(link: RedisLink, name: string): Promise<string | undefined> {
  const answer = await link.ask('CONFIG', 'GET', name).catch(() => undefined)
  if (Array.isArray(answer) && answer.length === 2) return String(answer[1])
  return isOptions(answer) && Object.hasOwn(answer, name)
    ? String(Reflect.get(answer, name))
    : undefined
}

function fieldsOf(info: string): ReadonlyMap<string, string> {
  const pairs = info.split(/\r?\n/).flatMap((line): [string, string][] => {
    const at = line.indexOf(':')
    return at > 0 && !line.startsWith('#') ? [[line.slice(0, at), line.slice(at + 1)]] : []
  })
  return new Map(pairs)
}
