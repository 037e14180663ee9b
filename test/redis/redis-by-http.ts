import type { CommandClient } from '@sluice/redis'

/** A client of Redis for runtimes without sockets: each command is a POST of its parts as JSON. */
export function redisByHttp(url: string, token: string): CommandClient {
  return {
    async send(command, { signal }) {
      const response = await fetch(url, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify(command),
        signal,
      })
      const { result, error = `status ${response.status}` } = JSON.parse(await response.text())
      if (!response.ok) throw new Error(error)
      return result
    },
  }
}
