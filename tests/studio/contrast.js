() => {
    const numbers = color => (color.match(/[\d.]+/g) ?? []).map(Number).map((value, index) => color.startsWith('color(') && index < 3 ? 255 * value : value);
    const light = ([red, green, blue]) => [red, green, blue].map(value => value / 255).map(value => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4)
        .reduce((sum, value, index) => sum + value * [0.2126, 0.7152, 0.0722][index], 0);
    const over = (front, back) => { const share = front[3] ?? 1; return [0, 1, 2].map(index => front[index] * share + back[index] * (1 - share)); };
    const behind = element => {
        const layers = [];
        for (let one = element; one; one = one.parentElement) {
            const color = numbers(getComputedStyle(one).backgroundColor);
            if ((color[3] ?? 1) > 0) layers.push(color);
            if ((color[3] ?? 1) === 1) break;
        }
        return layers.reduceRight((back, front) => over(front, back), [255, 255, 255]);
    };
    const found = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        const element = node.parentElement;
        if (!node.textContent.trim() || !element.checkVisibility({checkOpacity: true, checkVisibilityCSS: true}) || element.closest('[aria-hidden=true], [disabled], svg, script, style')) continue;
        let alpha = 1;
        for (let one = element; one; one = one.parentElement) alpha *= getComputedStyle(one).opacity;
        const back = behind(element), color = numbers(getComputedStyle(element).color);
        const shown = over([...color.slice(0, 3), (color[3] ?? 1) * alpha], back);
        const [low, high] = [light(shown), light(back)].sort((one, two) => one - two);
        const contrast = (high + 0.05) / (low + 0.05);
        if (contrast < 4.5) found.push(`${contrast.toFixed(2)} ${element.className || element.tagName}: ${node.textContent.trim().slice(0, 30)}`);
    }
    return [...new Set(found)];
}
