import { moneyOf, tokensOf } from './ask.ts'

/** 10 tokens of prompt, and at most 100 of the answer. */
const ask = { max_tokens: 100, messages: [{ content: 'abcd'.repeat(10) }] }

const requests = [
  ['an answer', {}],
  ['without usage', { vendor: 'no usage' }],
  ['cut', { vendor: 'cut' }],
  ['an error', { vendor: 'fail' }],
  ['too large', { max_tokens: 900 }],
] as const

/** Sends requests to a proxy, and prints the remaining limits after each. */
export async function showCosts(url: string, model: string): Promise<void> {
  console.log(`\nrequest        status  answer      left (${model})`)
  for (const [name, change] of requests) {
    const answer = await send(url, { ...ask, ...change, model })
    const tokens = (await answer.text()).match(/abc /g)?.length ?? 0
    const left = await leftAt(url, model)
    console.log(
      ...[name.padEnd(14), String(answer.status).padEnd(7), `${tokens} tokens`.padEnd(11)],
      ...[left.tokens, 'tokens,', left.money, 'micro-dollars'],
    )
  }
}

/** A failed request takes nothing. Its fields show the remaining units without its own. */
async function leftAt(url: string, model: string) {
  const probe = { ...ask, model, vendor: 'fail' }
  const { headers } = await send(url, probe)
  const [, tokens, money] =
    /"tokens";r=(\d+).*"money";r=(\d+)/.exec(headers.get('ratelimit') ?? '') ?? []
  return { tokens: Number(tokens) + tokensOf(probe), money: Number(money) + moneyOf(probe) }
}

function send(url: string, body: object): Promise<Response> {
  const headers = { 'content-type': 'application/json', 'x-user': 'grace' }
  return fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })
}
