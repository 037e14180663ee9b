import theme from 'vitepress/theme'
import { defineComponent, h, onBeforeUnmount, onMounted, ref } from 'vue'
import '../playground/playground.css'
import './site.css'

/** The playground, loaded once the page is there: it runs in the browser alone. */
const Playground = defineComponent({
  props: { hero: Boolean },
  setup({ hero }) {
    const box = ref<Element>()
    let unmount: (() => void) | undefined
    onMounted(async () => {
      const { mount } = await import('../playground/playground.tsx')
      if (box.value) unmount = mount(box.value, hero)
    })
    onBeforeUnmount(() => unmount?.())
    return () => h('div', { ref: box, class: hero ? 'playground-hero' : 'playground-page' })
  },
})

export default {
  extends: theme,
  Layout: () =>
    h(theme.Layout, null, { 'home-features-before': () => h(Playground, { hero: true }) }),
  enhanceApp: ({ app }: { app: { component: (name: string, component: object) => unknown } }) => {
    app.component('Playground', Playground)
  },
}
