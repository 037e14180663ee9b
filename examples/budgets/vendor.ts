import { createServer, type Server, type ServerResponse } from 'node:http'
import { json } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Ask } from './ask.ts'

interface VendorAsk extends Ask {
  /** How the vendor misbehaves. @default not at all */
  readonly vendor?: 'cut' | 'no usage' | 'fail'
}

/** Tokens that the vendor charges for, but that are not part of the answer. */
const thinking = 10

/** A local server that streams like OpenAI and Anthropic. A token has four characters. */
export function createVendor(): Server {
  return createServer(async (request, response) => {
    const ask = (await json(request)) as VendorAsk
    if (ask.vendor === 'fail') {
      response.writeHead(500).end('{"error":{"type":"server_error"}}')
      return
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const isDone = await answer(response, ask, request.url === '/v1/messages' ? anthropic : openai)
    if (isDone) response.end()
    else response.destroy()
  })
}

/** Sends an answer of 80 tokens, or of `max_tokens` if lower. Returns false if it cuts the stream. */
async function answer(
  response: ServerResponse,
  { max_tokens, messages, vendor }: VendorAsk,
  speak: typeof openai,
): Promise<boolean> {
  const output = Math.min(max_tokens, 80)
  const input = messages.reduce((sum, { content }) => sum + Math.ceil(content.length / 4), 0)
  const { first, token, last } = speak(input, vendor === 'no usage' ? undefined : output + thinking)
  response.write(first)
  for (let sent = 0; sent < output; sent += 1) {
    if (vendor === 'cut' && sent === 20) return false
    if (response.destroyed) return false
    response.write(token)
    await sleep(1)
  }
  response.write(last)
  return true
}

const data = (event: object): string => `data: ${JSON.stringify(event)}\n\n`

function openai(input: number, output: number | undefined) {
  const usage = { prompt_tokens: input, completion_tokens: output }
  return {
    first: data({ choices: [{ delta: { role: 'assistant' } }], usage: null }),
    token: data({ choices: [{ delta: { content: 'abc ' } }], usage: null }),
    last: `${output === undefined ? '' : data({ choices: [], usage })}data: [DONE]\n\n`,
  }
}

function anthropic(input: number, output: number | undefined): ReturnType<typeof openai> {
  const event = (type: string, more: object) => `event: ${type}\n${data({ type, ...more })}`
  const usage = output === undefined ? undefined : { output_tokens: output }
  return {
    first: event('message_start', { message: { usage: { input_tokens: input } } }),
    token: event('content_block_delta', { delta: { type: 'text_delta', text: 'abc ' } }),
    last:
      event('message_delta', { delta: { stop_reason: 'end_turn' }, usage }) +
      event('message_stop', {}),
  }
}
